import { type Command, InvalidArgumentError } from 'commander';
import { addressProblem } from '../targets.ts';

/** Options of commands that talk to a running server. A key is never an argument. */
export function withTarget(command: Command): Command {
  return command
    .option('--url <address>', 'of the server; default: the one that `start` runs on DATA_DIR', serverAddress)
    .option('--key-file <file>', 'that has the key; default: the environment, then keys.json in DATA_DIR');
}

/** @throws InvalidArgumentError */
function serverAddress(text: string): string {
  const problem = addressProblem(text);
  if (problem === null) return text;
  throw new InvalidArgumentError(`${problem[0]?.toUpperCase()}${problem.slice(1)}.`);
}
