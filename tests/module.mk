include $(wildcard tests/*/module.mk)
