/** What Ctrl-C sends to a program in a terminal. */
export const CTRL_C = '\x03';

/** A command in its own pseudo-terminal, with this program's input as its keyboard. */
export function inTerminal(command: string): string[] {
  // `exec`: a shell in between would exit at Ctrl-C by itself, with its own exit code.
  return ['script', '--quiet', '--return', '--command', `exec ${command}`, '/dev/null'];
}
