import { chdir } from 'node:process';
import { fileURLToPath } from 'node:url';
import { readEnvFile } from './env-file.mjs';
import { prepare } from './prepare.mjs';
import { runScript } from './run-script.mjs';
import { helpText } from './settings.mjs';

const args = process.argv.slice(2);
const unknown = args.find((arg) => arg !== '--help' && arg !== '-h');

if (unknown !== undefined) {
  console.error(`npm start takes no argument '${unknown}'. Settings are environment variables: npm start -- --help lists them.`);
  process.exitCode = 2;
} else if (args.length > 0) {
  process.stdout.on('error', () => process.exit()); // `| head` closes it early
  process.stdout.write(helpText()); // before any install, on any Node
} else {
  await runScript(start);
}

/** In this process, so that signals and exit codes are its own. */
async function start() {
  chdir(fileURLToPath(new URL('..', import.meta.url))); // npm's working folder, wherever the script is started
  await prepare({ build: true });
  readEnvFile(process.env); // after npm, which must not get them
  process.setSourceMapsEnabled(true);
  // Dynamic, since the build exists only now.
  const main = new URL('../dist/services/standalone/main.js', import.meta.url);
  await import(main.href);
}
