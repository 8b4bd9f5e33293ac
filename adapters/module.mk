include $(wildcard adapters/*/module.mk)
