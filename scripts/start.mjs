import { readEnvFile } from './env-file.mjs';
import { commands, enterPackage } from './package-folder.mjs';
import { runScript } from './run-script.mjs';
import { helpText } from './settings.mjs';

const args = process.argv.slice(2);
const unknown = args.find((arg) => arg !== '--help' && arg !== '-h');

if (unknown !== undefined) {
  console.error(
    `${commands.start} takes no argument '${unknown}'. Settings are environment variables: ${commands.start}${commands.separator} --help lists them.`,
  );
  process.exitCode = 2;
} else if (args.length > 0) {
  process.stdout.on('error', () => process.exit()); // `| head` closes it early
  process.stdout.write(helpText()); // before any install, on any Node
} else {
  await runScript(start);
}

/** In this process, so that signals and exit codes are its own. */
async function start() {
  await enterPackage();
  readEnvFile(process.env); // after npm, which must not get them
  // Dynamic, since the build exists only now.
  const main = new URL('../dist/services/standalone/main.js', import.meta.url);
  await import(main.href);
}
