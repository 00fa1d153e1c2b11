// Texts that are stored once and named by number. The numbers are the ids of rocpd_string.
//
// They are kept for the life of the process: a forked child writes them into its own file again.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rocpd {

class Texts {
public:
    // Returns the number of `text`. Takes a lock, so recording threads ask before the event.
    std::uint32_t number(std::string_view text) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = numbers_.find(text);
        if (found != numbers_.end()) return found->second;
        texts_.emplace_back(text);
        const auto fresh = static_cast<std::uint32_t>(texts_.size());
        numbers_.emplace(texts_.back(), fresh);
        return fresh;
    }

    // Returns the texts after the first `known`, in the order of their numbers.
    std::vector<std::string_view> after(std::size_t known) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (known >= texts_.size()) return {};
        return {texts_.begin() + static_cast<std::ptrdiff_t>(known), texts_.end()};
    }

    // Returns the text of a number, empty for 0.
    std::string_view text(std::uint32_t number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return number == 0 || number > texts_.size() ? std::string_view() : texts_[number - 1];
    }

    // Held over fork(), so that the child finds the tables whole.
    std::mutex& mutex() { return mutex_; }

private:
    std::mutex mutex_;
    std::deque<std::string> texts_;  // never moved: views of them stay valid
    std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace rocpd
