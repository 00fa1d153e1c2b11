-- Categories of one rank whose regions may be frames of sampled call stacks: where there are none, no region is one.
SELECT id FROM rocpd_string WHERE string IN {{samplers}}
