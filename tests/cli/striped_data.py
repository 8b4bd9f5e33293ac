"""The size of the striped file `data` that the fixture `striped` imports: odd, and several stripes."""

STRIPED_BYTES = 3_000_017
