#include "base/cidr.h"
