import { chdir } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { askAgent, askRouter } from './ask-server.mjs';
import { readEnvFile } from './env-file.mjs';
import { findRunning } from './find-running.mjs';
import { runScript } from './run-script.mjs';
import { wrapPrint } from './wrap-print.mjs';

const usage = `Usage: npm run -s ask -- "Hello"                    ask the model router
       npm run -s ask -- --model <id> "Hello"       ask one of its models
       npm run -s ask -- --agent "Hello"            ask the agent
       npm run -s ask -- --help                     print this

Sends one message to what npm start runs, and prints the text of the answer as it
comes. Finds the addresses and the keys in DATA_DIR (default: data). Ends with 1
when the answer fails.`;

const options = /** @type {const} */ ({
  agent: { type: 'boolean', default: false },
  model: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
});

const asked = questionFrom(process.argv.slice(2));
process.stdout.on('error', () => process.exit()); // `| head` closes it early, and that is fine
if (asked === 'help') process.stdout.write(`${usage}\n`);
else if (typeof asked === 'string') {
  console.error(`${asked}\n\n${usage}`);
  process.exitCode = 2;
} else await runScript(() => ask(asked));

/** @param {{ text: string, isForAgent: boolean, model: string | undefined }} question */
async function ask({ text, isForAgent, model }) {
  chdir(fileURLToPath(new URL('..', import.meta.url)));
  readEnvFile(process.env);
  const running = findRunning(process.env);
  const print = wrapPrint((piece) => void process.stdout.write(piece), process.stdout.isTTY ? process.stdout.columns : undefined);
  if (isForAgent) await askAgent(running.agent, { text, print });
  else await askRouter(running.router, { text, model, print });
}

/** @param {string[]} args @returns {{ text: string, isForAgent: boolean, model: string | undefined } | string} `help`, or what is wrong with them */
function questionFrom(args) {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (values.help) return 'help';
    const text = positionals.join(' ').trim();
    return text === '' ? 'There is no text to send.' : { text, isForAgent: values.agent, model: values.model };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
