// Precompiled for units of tests.
#include <gtest/gtest.h>

#include "make/pch/common.h"
