import { chdir } from 'node:process';
import { parseArgs } from 'node:util';
import { askAgent, askRouter } from './ask-server.mjs';
import { readEnvFile } from './env-file.mjs';
import { findRunning } from './find-running.mjs';
import { commands, isClone, packageFolder } from './package-folder.mjs';
import { runScript, ScriptError } from './run-script.mjs';
import { wrapPrint } from './wrap-print.mjs';

const usage = `Usage: ${commands.ask} "Hello"                    ask the model router
       ${commands.ask} --model <id> "Hello"       ask one of its models
       ${commands.ask} --agent "Hello"            ask the agent
       ${commands.ask} --help                     print this

Sends one message to the servers that ${commands.start} runs, and prints the text of
the answer as it arrives. Reads the addresses and the keys from DATA_DIR (default:
data). The exit code is 1 if the answer fails, 3 if no server answers, 4 if the key
is refused.`;

const options = /** @type {const} */ ({
  agent: { type: 'boolean', default: false },
  model: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
});

const asked = questionFrom(process.argv.slice(2));
process.stdout.on('error', () => process.exit()); // `| head` closes it early
if (asked === 'help') process.stdout.write(`${usage}\n`);
else if (typeof asked === 'string') {
  console.error(`${asked}\n\n${usage}`);
  process.exitCode = 2;
} else await runScript(() => ask(asked));

/** @typedef {{ text: string, isForAgent: boolean, model: string | undefined }} Question */

/** @param {Question} question */
async function ask({ text, isForAgent, model }) {
  if (isClone) chdir(packageFolder);
  readEnvFile(process.env);
  try {
    await send({ text, isForAgent, model });
  } catch (error) {
    throw error instanceof ScriptError ? new ScriptError(forTerminal(error.message), error.exitCode) : error;
  }
}

/** @param {Question} question */
async function send({ text, isForAgent, model }) {
  const running = findRunning(process.env);
  const print = wrapPrint((piece) => void process.stdout.write(piece), process.stdout.isTTY ? process.stdout.columns : undefined);
  if (isForAgent) await askAgent(running.agent, { text, print });
  else await askRouter(running.router, { text, model, print });
}

/** @param {string} message */
function forTerminal(message) {
  let text = '';
  const add = (/** @type {string} */ piece) => {
    text += piece;
  };
  const print = wrapPrint(add, process.stderr.isTTY ? process.stderr.columns : undefined);
  print(`${message}\n`);
  return text.trimEnd();
}

/** @param {string[]} args @returns {Question | string} `help`, or the error text */
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
