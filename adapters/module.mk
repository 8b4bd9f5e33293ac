# The libraries come after the folders of which they have something.
include $(foreach folder,semiext kv hybrid share graphchi gridgraph graph python,adapters/$(folder)/module.mk)
