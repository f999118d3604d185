-- Lists of dead letters are read by time, newest first, a page at a time.
create index dead_letters_created_at on dead_letters (created_at desc);
