-- Up to ARGV[2] tasks that ended before ARGV[1] and have no open webhooks or ended before ARGV[3], oldest first: path and time of
-- each.
return oldest(ended_key, ARGV[1], ARGV[3], tonumber(ARGV[2]))
