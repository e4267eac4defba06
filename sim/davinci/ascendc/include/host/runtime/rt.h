#pragma once
#include "rt_ffts.h"
