"""The size of the striped file `data` of the fixture `striped`: odd, and several stripes long."""

STRIPED_BYTES = 3_000_017
