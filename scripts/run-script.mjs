import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { requireNode } from './node-version.mjs';
import { Interrupted } from './run-child.mjs';

/** As those of services/operator/failures.ts, which is not built before the first start. */
export const exitCodes = { failed: 1, unreachable: 3, refused: 4 };

/** An error that the user can fix: printed without a stack. */
export class ScriptError extends Error {
  /** @param {string} message @param {number} [exitCode] */
  constructor(message, exitCode = exitCodes.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a script's main function: prints errors, and maps signals to the shells' exit codes.
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
    process.exit(error instanceof ScriptError ? error.exitCode : exitCodes.failed);
  }
}

/** Whether a module is the started program. @param {string} moduleUrl its `import.meta.url` */
export function isProgram(moduleUrl) {
  const [, program] = process.argv;
  // Symbolic links are resolved in `import.meta.url` and not in argv.
  return program !== undefined && realpathSync(program) === fileURLToPath(moduleUrl);
}
