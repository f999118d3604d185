import type { Command } from 'commander';

/** Options of commands that talk to a running server. A key is never an argument. */
export function withTarget(command: Command): Command {
  return command
    .option('--url <address>', 'of the server; default: the one that `start` runs on DATA_DIR')
    .option('--key-file <file>', 'that has the key; default: the environment, then keys.json in DATA_DIR');
}
