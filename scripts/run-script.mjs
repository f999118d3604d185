import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { requireNode } from './node-version.mjs';
import { Interrupted } from './run-child.mjs';

/** Something that the person at the terminal can put right: its message says what, and a stack would only hide it. */
export class ScriptError extends Error {}

/**
 * Runs the main function of a script: known failures become a sentence, signals the exit code that shells expect.
 *
 * @param {() => Promise<void>} main
 */
export async function runScript(main) {
  requireNode();
  try {
    await main();
  } catch (error) {
    if (error instanceof Interrupted) process.exit(error.exitCode);
    console.error(error instanceof ScriptError ? error.message : error);
    process.exit(1);
  }
}

/** Whether a module is the program that was started, and not imported by it. @param {string} moduleUrl its `import.meta.url` */
export function isProgram(moduleUrl) {
  const [, program] = process.argv;
  // Node resolves links in a module's own address and not in argv.
  return program !== undefined && realpathSync(program) === fileURLToPath(moduleUrl);
}
