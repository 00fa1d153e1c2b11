// The recorder's messages: single lines on stderr, each reason once.
#pragma once

#include <string>

namespace rocpd {

void say(const std::string& line);

}  // namespace rocpd
