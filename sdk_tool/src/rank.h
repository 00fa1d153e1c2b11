// Owns which rank of a job this process is, as its launcher says in the environment.
#pragma once

namespace rocpd {

// -1: not known.
struct Rank {
    int number = -1;
    int count = -1;
    int on_node = -1;        // its number among those of its node
    int count_on_node = -1;
};

Rank rank_of_process();

}  // namespace rocpd
