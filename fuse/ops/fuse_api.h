// libfuse's low-level interface, in the one version that all of fuse/ uses. 3.14 is Debian 12's.
// Features of later versions are guarded by their macros.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
