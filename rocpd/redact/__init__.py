"""Files of a job that can be given away: the same numbers, with other names for what says where and by whom it ran."""
