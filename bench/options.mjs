import { parseArgs } from 'node:util';
import { loadsOf } from './rounds.mjs';
import { rows } from './rows.mjs';
import { traffics } from './shape.mjs';
import { targetNames } from './target-names.mjs';

/**
 * @typedef {object} Options
 * @property {boolean} quick
 * @property {string[]} rows
 * @property {number | null} rounds null: as many as the settings say
 * @property {readonly import('./shape.mjs').Traffic[]} traffics at least one
 * @property {string[] | null} targets null: all that the rows need
 * @property {boolean} more
 * @property {boolean} profile
 * @property {string[] | null} profileLoads loads of switchyard; null: those of a request, a token and a turn
 * @property {string | null} profileFolder keeps the profiles; null: removed when they have been summed up
 * @property {boolean} write
 * @property {number | null} soakMinutes null: no soak
 */

const MAX_ROUNDS = 100;
const MAX_MINUTES = 24 * 60;
const SOAK_MINUTES = 10;
/** As production has it. @type {import('./shape.mjs').Traffic} */
const QUICK_TRAFFIC = 'vendor';

export const usage = `Usage: npm run bench                              measure and print the table
       npm run bench -- --quick                   one short round of one traffic: the ratio of every row that has one, which means little
       npm run bench -- --rows request-cpu,turn   these rows only ('none': no row)
       npm run bench -- --rounds 5                more rounds than 3
       npm run bench -- --traffic plain           one form of requests and answers: ${traffics.join(' or ')}; both otherwise, ${QUICK_TRAFFIC} if quick
       npm run bench -- --targets switchyard      these only, of those that the rows need
       npm run bench -- --profile                 also CPU of one request, token and turn, by function
       npm run bench -- --profile-loads engineTurns16   the profile of these loads instead
       npm run bench -- --profile-folder FOLDER   keeps the .cpuprofile files there, which Chromium's DevTools open
       npm run bench -- --more                    also embedded, two of each, long answers, batches
       npm run bench -- --soak                    ten minutes of one load instead: memory of each process, and of the broker's streams, over time
       npm run bench -- --soak --minutes 60       longer
       npm run bench -- --write                   write the results to bench/RESULTS.md
       npm run bench -- --help                    print this

Rows: ${rows.map(({ name }) => name).join(', ')}
Targets: ${targetNames.join(', ')}

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
      options: {
        quick: flag,
        more: flag,
        profile: flag,
        'profile-loads': text,
        'profile-folder': text,
        write: flag,
        soak: flag,
        minutes: text,
        rows: text,
        rounds: text,
        traffic: text,
        targets: text,
        help: { ...flag, short: 'h' },
      },
    }));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
  if (values.help) return 'help';
  const known = rows.map(({ name }) => name);
  const standard = rows.filter(({ isNotQuick = false }) => !(values.quick && isNotQuick)).map(({ name }) => name);
  const wanted = values.rows === undefined ? standard : values.rows.split(',').filter((name) => name !== 'none');
  const unknown = wanted.find((name) => !known.includes(name));
  if (unknown !== undefined) return new Error(`There is no row '${unknown}'.`);
  const rounds = values.rounds === undefined ? null : Number(values.rounds);
  if (rounds !== null && !(Number.isInteger(rounds) && rounds >= 1 && rounds <= MAX_ROUNDS))
    return new Error(`--rounds takes a number from 1 to ${MAX_ROUNDS}.`);
  // A quick run has one: twice as many figures that mean little would take twice as long.
  const standing = values.quick ? [QUICK_TRAFFIC] : traffics;
  const chosen = values.traffic === undefined ? standing : traffics.filter((traffic) => traffic === values.traffic);
  if (chosen.length === 0) return new Error(`--traffic takes ${traffics.join(' or ')}.`);
  const targets = values.targets?.split(',') ?? null;
  const unknownTarget = targets?.find((name) => !targetNames.includes(name));
  if (unknownTarget !== undefined) return new Error(`There is no target '${unknownTarget}'.`);
  const minutes = values.minutes === undefined ? SOAK_MINUTES : Number(values.minutes);
  if (!(minutes > 0 && minutes <= MAX_MINUTES)) return new Error(`--minutes takes a number up to ${MAX_MINUTES}.`);
  const { quick, more, write, soak } = values;
  const profileLoads = values['profile-loads']?.split(',') ?? null;
  const unknownLoad = profileLoads?.find((name) => !loadsOf('switchyard').includes(name));
  if (unknownLoad !== undefined) return new Error(`There is no load '${unknownLoad}' of switchyard: ${loadsOf('switchyard').join(', ')}.`);
  const profileFolder = values['profile-folder'] ?? null;
  const profile = values.profile || profileLoads !== null || profileFolder !== null;
  if (values.minutes !== undefined && !soak) return new Error('--minutes belongs to --soak.');
  if (write && soak) return new Error('--write takes no --soak: it measures no row.');
  if (write && targets !== null) return new Error('--write takes no --targets: the rows compare with the others.');
  return {
    quick,
    more,
    profile,
    profileLoads,
    profileFolder,
    write,
    soakMinutes: soak ? minutes : null,
    rounds,
    rows: soak ? [] : wanted,
    traffics: chosen,
    targets,
  };
}
