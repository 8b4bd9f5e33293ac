"""A program that runs beside us, and what it says when it is through."""

import subprocess
import tempfile


class CapturedProcess:
    """Its input is empty; its output and errors go to a file, so that it never waits for us."""

    def __init__(self, words, directory):
        self.file = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([str(word) for word in words], cwd=directory,
                                        stdin=subprocess.DEVNULL, stdout=self.file,
                                        stderr=subprocess.STDOUT)

    def status(self) -> int | None:
        """Nothing: it is running."""
        return self.process.poll()

    def send(self, signal) -> None:
        self.process.send_signal(signal)

    def output(self) -> str:
        self.file.seek(0)
        return self.file.read()

    def close(self) -> None:
        """Whether it is through or not."""
        self.process.kill()
        self.process.wait()
        self.file.close()
