"""The extension is built by make, so setuptools only has to know that there is one: the wheel is of one Python and
one machine."""

from setuptools import Distribution, setup


class BuiltByMake(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(distclass=BuiltByMake)
