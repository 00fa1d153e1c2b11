#include "say.h"

#include <unistd.h>

namespace rocpd {

void say(const std::string& line) {
    const std::string text = "rocpd: " + line + "\n";
    // One write, so that lines of many processes do not mix. A failure cannot be reported anywhere.
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace rocpd
