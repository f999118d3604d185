import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brokerInUse } from './broker.mjs';
import { describeMachine } from './machine.mjs';
import { measureMore } from './more.mjs';
import { optionsFrom, usage } from './options.mjs';
import { profileRun } from './profile/profile-run.mjs';
import { allFiguresOf, cpuByProcessOf, failuresOf, tableOf, trafficTableOf } from './report.mjs';
import { measureRounds } from './rounds.mjs';
import { rows } from './rows.mjs';
import { fullSettings, quickSettings } from './settings.mjs';
import { soak } from './soak.mjs';
import { stopTargets } from './targets/start-target.mjs';
import { startUpstream } from './upstream/start-upstream.mjs';

/** @typedef {import('./options.mjs').Options} Options */
/** @typedef {import('./rounds.mjs').Need} Need */

const RESULTS = fileURLToPath(new URL('RESULTS.md', import.meta.url));
/** It neither aborts nor refuses. */
const BARE_HOP_LOADS = new Set(['whole64', 'whole1', 'tokens']);
/** One of each kind: requests, tokens and turns. */
const FORMER_LOADS = new Set(['whole64', 'tokens', 'turns16']);
/** A Ctrl-C under npm is delivered twice; a second signal later than this ends the process at once. */
const REPEAT_MS = 1_000;

const options = optionsFrom(process.argv.slice(2));
if (options === 'help' || options instanceof Error) {
  console.error(options instanceof Error ? `${options.message}\n\n${usage}` : usage);
  process.exit(options instanceof Error ? 2 : 0);
}
endOnSignals();
try {
  await bench(options);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await stopTargets();
}
process.exit(); // the upstream ends with its channel; nothing else is open

/** @param {Options} options */
async function bench({ quick, rows: names, rounds: wantedRounds, traffics, targets, more, profile, profileLoads, profileFolder, write, soakMinutes }) {
  const settingsIn = quick ? quickSettings : fullSettings;
  const settings = { plain: settingsIn('plain'), vendor: settingsIn('vendor') };
  const rounds = wantedRounds ?? settings.plain.rounds;
  const { version, canSync } = await brokerInUse();
  const machine = [...describeMachine(), `- nats-server ${version}, ${canSync ? 'synced on each write' : 'which cannot be synced on each write'}`];
  const upstream = await startUpstream();
  const core = Number(process.env.BENCH_TARGET_CORE);
  const say = (/** @type {string} */ line) => console.error(line);
  const needs = needsOf(names, more).filter(({ target }) => targets === null || targets.includes(target));
  const measured = await measureRounds({ upstream, settings, core, say, traffics, rounds }, needs);
  // Profiles, and what has no bar, are of one traffic: the one that production has, unless the other is asked for alone.
  const single = { upstream, settings: settings[traffics.at(-1) ?? 'vendor'], core, say };
  const sections = [
    ['What was measured', [...machine, `- ${describeRun({ ...settings.plain, rounds }, quick)}`].join('\n')],
    ...traffics.flatMap((traffic) => sectionsOf(measured, { names, traffic })),
    ...(traffics.length > 1 && names.length > 0 ? [['What vendor traffic costs beside plain', trafficTableOf(measured)]] : []),
    ...(failuresOf(measured) === '' ? [] : [['What failed', failuresOf(measured)]]),
    ...(names.length > 0 ? [['All figures', allFiguresOf(measured)]] : []),
    ...(profile ? [['Where the CPU goes', await profileRun(single, { loads: profileLoads, folder: profileFolder })]] : []),
    ...(soakMinutes === null ? [] : [['Soak', await soak(single, { minutes: soakMinutes })]]),
    ...(more ? [['More, without a bar', await measureMore(single)]] : []),
  ];
  const text = sections.map(([title, body]) => `## ${title}\n\n${body}`).join('\n\n');
  console.log(text);
  if (write) writeFileSync(RESULTS, `# Results\n\nWritten by \`npm run bench -- --write\`; [README.md](README.md) says what the rows mean.\n\n${text}\n`);
}

/** @param {readonly import('./rounds.mjs').Measured[]} all @param {{ names: string[], traffic: import('./shape.mjs').Traffic }} of */
function sectionsOf(all, { names, traffic }) {
  if (names.length === 0) return [];
  const measured = all.filter((one) => one.traffic === traffic);
  const cpu = cpuByProcessOf(measured);
  return [[`The table, ${traffic} traffic`, tableOf(measured, names, traffic)], ...(cpu === '' ? [] : [[`CPU by process, ${traffic} traffic`, cpu]])];
}

/** The bare hop is measured beside the proxies, so that a reader sees what of a figure is the shape's, and what Switchyard's. The former settings are measured beside today's. With `more` the embedded Switchyard is measured too, and all that the baselines can be asked for. @param {string[]} names @param {boolean} more @returns {Need[]} */
function needsOf(names, more) {
  const needs = rows.filter(({ name }) => names.includes(name)).flatMap((row) => row.needs);
  const atRouter = needs.filter(({ target }) => target === 'raw-proxy' || target === 'portkey').map(({ load }) => load);
  needs.push(...atRouter.filter((load) => BARE_HOP_LOADS.has(load)).map((load) => ({ target: 'bare-hop', load })));
  needs.push(...needs.filter(({ target, load }) => target === 'switchyard' && FORMER_LOADS.has(load)).map(({ load }) => ({ target: 'former-settings', load })));
  if (!more) return needs;
  const all = ['direct', 'raw-proxy', 'portkey', 'standalone'];
  return [...needs, ...needs.flatMap(({ load }) => all.map((target) => ({ target, load })))];
}

/** @param {import('./settings.mjs').Settings} settings @param {boolean} quick */
function describeRun({ rounds, whole, tokens, streams, turns, polls }, quick) {
  const facts = [
    `${rounds} ${rounds === 1 ? 'round' : 'rounds'}`,
    `${whole.measureMs / 1_000} s of whole requests`,
    `${tokens.measureMs / 1_000} s of ${tokens.streams} streams of ${tokens.shape.tokens} tokens`,
    `${streams.measureMs / 1_000} s of ${streams.streams} streams of ${streams.shape.tokens}`,
    `${turns.measureMs / 1_000} s of turns`,
    `${polls.polls} long-polls`,
  ];
  return `${quick ? '**a quick run: it shows that everything works, its figures are not to be believed**; ' : ''}${facts.join(', ')}`;
}

/** Stops the targets, then exits. */
function endOnSignals() {
  let firstAtMs = 0;
  for (const [name, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
    process.on(name, () => {
      if (firstAtMs === 0) {
        firstAtMs = performance.now();
        console.error(`\n${name}: ending what was started …`);
        void stopTargets().finally(() => process.exit(code));
      } else if (performance.now() - firstAtMs >= REPEAT_MS) process.exit(code);
    });
  }
}
