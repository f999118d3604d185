import type { Bundle } from '../../shared/config/load-bundle.ts';
import { engineBundle, MAX_ITERATIONS, REEVALUATING_TOOL, repair } from './engine-bundle.ts';

/** A row of a turn, as far as rules look at it. */
export interface TurnRow {
  kind: string;
  key?: string;
  state?: { paths: Record<string, (string | null)[]> };
  reference?: { policyIds?: string[]; kind?: string; at?: string };
  answer?: { verdicts?: { id: string; applies: boolean }[]; kind?: string; follow?: string[] | null };
  call?: { toolId: string };
  paths?: Record<string, (string | null)[]>;
  documents?: unknown[];
  compares?: unknown[];
  terms?: unknown[];
}

interface Breach {
  rule: string;
  text: string;
}

/** Of a search by meaning, in the order in which they are stored. */
const STAGES = ['query', 'embedding', 'search'];

type Path = readonly (string | null)[];

const ROUTINE = repair.id;
const POLICIES = bundlePolicies(engineBundle);
const toolsOf = new Map<string, readonly string[]>(repair.steps.map((step) => [step.id, 'tool_state' in step ? step.tool_state : []]));
/** Of the first step, which is asked about before it is entered. */
const [FIRST] = repair.steps.map(({ id }) => id);

/** Of policies that each first pass judges, in order. */
export function bundlePolicies({ body }: Bundle): string[] {
  return body.documents.policies.map(({ id }) => id).sort();
}

/** After a tool of `reevaluation_tools` what does not apply yet is judged again before the turn resolves: the pass before it is stale. */
export function checkReevaluation(rows: readonly TurnRow[]): Breach[] {
  const found: Breach[] = [];
  let beginning = 0;
  for (const [at, row] of rows.entries()) {
    if (row.kind === 'began') beginning = at;
    if (row.kind !== 'resolved') continue;
    const current = rows.slice(beginning, at);
    const toolAt = current.findLastIndex(
      ({ kind, call, key = '' }) => kind === 'tool' && call?.toolId === REEVALUATING_TOOL && iterationOf(key) < MAX_ITERATIONS,
    );
    if (toolAt < 0) continue;
    const applying = new Set(current.slice(0, toolAt).flatMap(({ answer }) => answer?.verdicts?.flatMap(({ id, applies }) => (applies ? [id] : [])) ?? []));
    const left = POLICIES.filter((id) => !applying.has(id));
    const again = new Set(current.slice(toolAt).flatMap(({ kind, reference }) => (kind === 'match' ? (reference?.policyIds ?? []) : [])));
    const stale = left.filter((id) => !again.has(id));
    if (stale.length > 0) found.push({ rule: 'stale pass', text: `resolves with ${stale.join()} judged before ${REEVALUATING_TOOL} had run` });
  }
  return found;
}

/** What a turn adds to a path has its reason in the turn's rows: an answer that names the node, or the tool of the step before it. */
export function checkPaths(rows: readonly TurnRow[]): Breach[] {
  const found: Breach[] = [];
  let beginning = 0;
  for (const [at, row] of rows.entries()) {
    if (row.kind === 'began') beginning = at;
    const after = row.kind === 'resolved' ? row.paths?.[ROUTINE] : undefined;
    if (after === undefined) continue;
    const before: Path = rows[beginning]?.state?.paths[ROUTINE] ?? [];
    if (after.slice(0, before.length).join('>') !== before.join('>')) found.push({ rule: 'path', text: `${after.join('>')} after ${before.join('>')}` });
    for (const [index, to] of after.entries()) {
      if (index < before.length || to === null) continue;
      const from = after[index - 1] ?? null;
      if (!isFounded(from, to, rows.slice(0, at), rows.slice(beginning, at)))
        found.push({ rule: 'skipped step', text: `${from} > ${to} without a reason, in ${after.join('>')}` });
    }
  }
  return found;
}

/** @param all the turn's rows so far @param current those since its last beginning */
function isFounded(from: string | null, to: string, all: readonly TurnRow[], current: readonly TurnRow[]): boolean {
  const answers = current.filter(({ kind }) => kind === 'routine');
  if (answers.some(({ reference }) => reference?.kind === 'select-node')) return true;
  if (answers.some(({ answer }) => answer?.follow?.includes(to) === true)) return true;
  // Entered at its first step by the answer that nothing follows yet.
  if (from === null && to === FIRST) return answers.some(({ reference }) => reference?.kind === 'next-step');
  // Of the calls of before a message joined, too.
  const tools = toolsOf.get(from ?? '') ?? [];
  return all.some(({ kind, call }) => kind === 'tool' && tools.includes(call?.toolId ?? ''));
}

function iterationOf(key: string): number {
  return Number(key.split('-')[1]);
}

/** The stages of a search stand behind each other, each once since the turn's beginning; without a vector nothing is found. */
export function checkSearch(rows: readonly TurnRow[]): Breach[] {
  const found: Breach[] = [];
  let stages: string[] = [];
  for (const { kind, documents = [] } of rows) {
    if (kind === 'began') stages = [];
    if (!STAGES.includes(kind)) continue;
    stages.push(kind);
    const isEarly = kind === 'search' && documents.length === 0;
    if (
      stages.length > STAGES.length ||
      (!isEarly && stages.some((stage, index) => stage !== STAGES[index])) ||
      stages.indexOf('search') < stages.lastIndexOf('search')
    )
      found.push({ rule: 'search', text: `has the stages ${stages.join()}` });
  }
  return found;
}

/** Nothing is decided before what was said has been compared, once for each beginning. */
export function checkLikeness(rows: readonly TurnRow[]): Breach[] {
  const found: Breach[] = [];
  let [awaited, compared] = [false, 0];
  for (const { kind, compares } of rows) {
    if (kind === 'began') [awaited, compared] = [compares !== undefined, 0];
    if (kind === 'likeness') compared += 1;
    if (compared > (awaited ? 1 : 0)) found.push({ rule: 'likeness', text: `has ${compared} results of a comparison` });
    const isDecided = kind === 'match' || kind === 'routine' || kind === 'resolved';
    if (isDecided && awaited && compared === 0) found.push({ rule: 'likeness', text: `has a row ${kind} before what was said is compared` });
  }
  return found;
}
