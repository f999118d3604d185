import { parseArgs } from 'node:util';
import { rows } from './rows.mjs';

/** @typedef {{ quick: boolean, rows: string[], rounds: number | null, more: boolean, profile: boolean, write: boolean }} Options `rounds` null: as many as the settings say */

const MAX_ROUNDS = 100;

export const usage = `Usage: npm run bench                              measure and print the table
       npm run bench -- --quick                   a run of 3 minutes that only shows that everything works
       npm run bench -- --rows request-cpu,turn   these rows only ('none': no row)
       npm run bench -- --rounds 5                more rounds than 3
       npm run bench -- --profile                 also CPU of one request, token and turn, by function
       npm run bench -- --more                    also embedded, two of each, large prompts, batches
       npm run bench -- --write                   write the results to bench/RESULTS.md
       npm run bench -- --help                    print this

Rows: ${rows.map(({ name }) => name).join(', ')}

Needs Linux with two otherwise idle cores. The load generator and the fake upstream
run on the first core, the measured processes on the second.`;

/** @param {string[]} args @returns {Options | 'help' | Error} an error for invalid arguments */
export function optionsFrom(args) {
  const flag = { type: /** @type {const} */ ('boolean'), default: false };
  const text = { type: /** @type {const} */ ('string') };
  let values;
  try {
    ({ values } = parseArgs({
      args,
      options: { quick: flag, more: flag, profile: flag, write: flag, rows: text, rounds: text, help: { ...flag, short: 'h' } },
    }));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
  if (values.help) return 'help';
  const known = rows.map(({ name }) => name);
  const wanted = values.rows === undefined ? known : values.rows.split(',').filter((name) => name !== 'none');
  const unknown = wanted.find((name) => !known.includes(name));
  if (unknown !== undefined) return new Error(`There is no row '${unknown}'.`);
  const rounds = values.rounds === undefined ? null : Number(values.rounds);
  if (rounds !== null && !(Number.isInteger(rounds) && rounds >= 1 && rounds <= MAX_ROUNDS))
    return new Error(`--rounds takes a number from 1 to ${MAX_ROUNDS}.`);
  const { quick, more, profile, write } = values;
  return { quick, more, profile, write, rounds, rows: wanted };
}
