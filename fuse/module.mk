# not yet
