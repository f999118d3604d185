import { existsSync } from 'node:fs';
import { readEnvFile } from './env-file.mjs';
import { runScript, ScriptError } from './run-script.mjs';

await runScript(operate);

/** Runs the operator's command line from the existing build, which matches the running processes, with the `.env` of the current folder. */
async function operate() {
  const main = new URL('../dist/services/operator/main.js', import.meta.url);
  if (!existsSync(main)) throw new ScriptError('There is no build in dist/ yet. This makes one:\n  node scripts/prepare.mjs --build');
  readEnvFile(process.env); // the keys and settings of a server that was started here
  await import(main.href);
}
