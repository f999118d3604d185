import { median } from './figures.mjs';
import { judge, worst } from './judge.mjs';
import { Figures, rows } from './rows.mjs';

/** @typedef {import('./rounds.mjs').Measured} Measured */
/** @typedef {import('./rows.mjs').Row} Row */
/** @typedef {import('./rows.mjs').Comparison} Comparison */

const words = { aim: 'meets the aim', bar: 'meets the bar', miss: 'MISSES', unknown: 'not measured' };

/**
 * The table of the requested rows, and a line with the number of rows that meet their bar.
 *
 * @param {readonly Measured[]} measured in this traffic
 * @param {readonly string[]} names of rows
 * @param {import('./shape.mjs').Traffic} traffic bars of the other are not judged
 * @returns {string} Markdown
 */
export function tableOf(measured, names, traffic) {
  const figures = new Figures(measured);
  const former = new Figures(withFormerSettings(measured));
  const wanted = rows.filter(({ name }) => names.includes(name));
  const asked = wanted.map((row) => ({ ...judgeRow(row, figures), isJudged: (row.traffic ?? 'plain') === traffic })).filter(({ isJudged }) => isJudged);
  const lines = wanted.flatMap((row) => {
    const { judged } = judgeRow(row, figures);
    const before = row.compare(former);
    const isJudged = (row.traffic ?? 'plain') === traffic;
    return judged.map((one, index) => {
      const cells = cellsOf(one);
      return [
        index === 0 ? row.title : '',
        ...cells.slice(0, 2),
        valued(before[index]?.value ?? null, one.unit),
        ...cells.slice(2, -1),
        isJudged ? (cells.at(-1) ?? '') : '',
      ];
    });
  });
  const table = alignedTable(['figure', 'of it', 'Switchyard', 'former settings', 'against', 'theirs', 'ratio', 'bar', 'aim', 'verdict'], lines);
  const holding = asked.filter(({ verdict }) => verdict === 'aim' || verdict === 'bar').length;
  const far = asked.flatMap(({ judged }) => judged).filter(({ verdict, missedBy }) => verdict === 'miss' && (missedBy === null || missedBy > 1.5)).length;
  return `${table}\n\n${holding} of ${asked.length} rows meet their bar; ${far} figures miss theirs by more than 1.5×.`;
}

/**
 * Every figure that was measured, as the median of its rounds with the least and the most.
 *
 * @param {readonly Measured[]} measured
 * @returns {string} Markdown
 */
export function allFiguresOf(measured) {
  /** @type {Map<string, { cells: string[], values: number[] }>} */
  const found = new Map();
  for (const { traffic, target, load, figures } of measured) {
    for (const [name, value] of Object.entries(figures)) {
      if (value === null || !Number.isFinite(value)) continue;
      const key = `${load} ${name} ${target} ${traffic}`;
      const row = found.get(key) ?? { cells: [load, name, target, traffic], values: [] };
      row.values.push(value);
      found.set(key, row);
    }
  }
  const lines = [...found.values()].map(({ cells, values }) => [...cells, short(median(values)), short(Math.min(...values)), short(Math.max(...values))]);
  lines.sort((one, other) => one.slice(0, 2).join().localeCompare(other.slice(0, 2).join()));
  return alignedTable(['load', 'figure', 'target', 'traffic', 'median', 'least', 'most'], lines);
}

/** Those that traffic can change. */
const TRAFFIC_FIGURES = ['cpuPerThousand', 'perSecond', 'p50Ms', 'firstTokenP50Ms', 'memoryPerThousandMb'];

/**
 * What vendors' form of requests and answers does to each target's figures.
 *
 * @param {readonly Measured[]} measured in both
 * @returns {string} Markdown
 */
export function trafficTableOf(measured) {
  const plain = new Figures(measured.filter(({ traffic }) => traffic === 'plain'));
  const vendor = new Figures(measured.filter(({ traffic }) => traffic === 'vendor'));
  const pairs = [...new Set(measured.map(({ load, target }) => `${load} ${target}`))].sort();
  const lines = pairs.flatMap((pair) => {
    const [load = '', target = ''] = pair.split(' ');
    return TRAFFIC_FIGURES.flatMap((figure) => {
      const [before, after] = [plain.median(target, load, figure), vendor.median(target, load, figure)];
      return before === null || after === null ? [] : [[load, target, figure, short(before), short(after), before === 0 ? '' : `${short(after / before)}×`]];
    });
  });
  return alignedTable(['load', 'target', 'figure', 'plain', 'vendor', 'ratio'], lines);
}

/**
 * CPU of Switchyard, by process.
 *
 * @param {readonly Measured[]} measured
 * @returns {string} Markdown; empty: nothing was measured that takes any
 */
export function cpuByProcessOf(measured) {
  const per = { whole64: '1,000 requests', tokens: '1,000 tokens', turns16: '1,000 turns' };
  const targets = ['switchyard', 'billed'].filter((target) => measured.some((one) => one.target === target));
  const lines = Object.entries(per).flatMap(([load, unit]) => {
    const rounds = measured.filter((one) => targets.includes(one.target) && one.load === load);
    const names = Object.keys(rounds[0]?.cpuByProcess ?? {});
    const figures = new Figures(rounds.map((one) => ({ ...one, figures: one.cpuByProcess })));
    return names.map((name, index) => [index === 0 ? `s per ${unit}` : '', name, ...targets.map((target) => short(figures.median(target, load, name)))]);
  });
  return lines.length === 0 ? '' : alignedTable(['CPU', 'process', ...targets], lines);
}

/** Failures. @param {readonly Measured[]} measured @returns {string} empty without failures */
export function failuresOf(measured) {
  return measured
    .filter(({ failures }) => failures.count > 0)
    .map(
      ({ round, traffic, target, load, failures }) =>
        `- round ${round}, ${traffic}, ${target}, ${load}: ${failures.count} failed: ${failures.messages.join(' / ')}`,
    )
    .join('\n');
}

/** What was measured of the former settings, in place of what was with those of today. @param {readonly Measured[]} measured */
function withFormerSettings(measured) {
  return measured.filter(({ target }) => target === 'former-settings').map((one) => ({ ...one, target: 'switchyard' }));
}

/** @param {Row} row @param {Figures} figures */
function judgeRow(row, figures) {
  const judged = row.compare(figures).map((comparison) => ({ ...comparison, ...judge(comparison) }));
  return { row, judged, verdict: worst(judged.map(({ verdict }) => verdict)) };
}

/** @param {Comparison & import('./judge.mjs').Judged} judged */
function cellsOf({ what, unit, value, against, baseline, ratio, bar, aim, sense, verdict, missedBy }) {
  const sign = sense === 'at most' ? '≤' : '≥';
  const limit = (/** @type {number | null} */ at) =>
    at === null || !Number.isFinite(at) ? '' : `${sign} ${at}${against === null ? ` ${unit}`.trimEnd() : '×'}`;
  const verdictText = verdict === 'miss' && missedBy !== null ? `${words.miss} by ${short(missedBy)}×` : words[verdict];
  return [what, valued(value, unit), against ?? '', valued(baseline, unit), ratio === null ? '' : `${short(ratio)}×`, limit(bar), limit(aim), verdictText];
}

/** @param {number | null} value @param {string} unit */
function valued(value, unit) {
  return value === null ? '' : `${short(value)} ${unit}`.trimEnd();
}

/** @param {number | null} value */
function short(value) {
  if (value === null) return '';
  return Math.abs(value) >= 1_000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** @param {readonly string[]} head @param {readonly string[][]} lines */
export function alignedTable(head, lines) {
  const widths = head.map((title, index) => Math.max(title.length, ...lines.map((line) => line[index]?.length ?? 0)));
  const print = (/** @type {readonly string[]} */ cells) => `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |`;
  return [print(head), print(widths.map((width) => '-'.repeat(width))), ...lines.map(print)].join('\n');
}
