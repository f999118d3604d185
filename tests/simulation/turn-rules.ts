import { policyBundle } from '../../services/actor-host/test-support/policy-bundle.ts';
import { comparingBundle, engineBundle } from './engine-bundle.ts';
import { bundlePolicies, checkLikeness, checkPaths, checkReevaluation, checkSearch, type TurnRow } from './engine-rules.ts';
import type { Row } from './model-rows.ts';
import type { Simulation } from './simulation.ts';

const POLICIES = new Map([policyBundle, engineBundle, comparingBundle].map((bundle) => [bundle.hash, bundlePolicies(bundle)]));

/**
 * Rows of turns are dense, a result is counted once, and a reply is composed only from answers of the turn's last beginning that judge each policy once a pass,
 * and checked once. Agent states of a session have a number each.
 */
export function checkTurns(simulation: Simulation): void {
  const { watch, model, gateway, counts } = simulation;
  for (const [turn, rows] of model.tables.turnSteps) {
    const ordered = [...rows].sort((left, right) => (left['seq'] as number) - (right['seq'] as number));
    if (ordered.some((row, index) => row['seq'] !== index)) watch.breach('turn rows', `of ${turn} are not dense: ${ordered.map((row) => row['seq']).join()}`);
    const bodies = ordered.map(bodyOf);
    const bundle = gateway.bundleOf(String(rows[0]?.['session_id']));
    checkBeginnings(simulation, turn, bodies, POLICIES.get(bundle) ?? []);
    if (bundle !== engineBundle.hash && bundle !== comparingBundle.hash) continue;
    for (const breach of [...checkReevaluation(bodies), ...checkPaths(bodies), ...checkSearch(bodies), ...checkLikeness(bodies)])
      watch.breach(breach.rule, `${turn}: ${breach.text}`);
    const has = (kind: string) => bodies.some((row) => row.kind === kind);
    if (has('search')) counts.turnsWithSearch += 1;
    if (bodies.some(({ documents = [] }) => documents.length > 0)) counts.turnsWithDocuments += 1;
    if (bodies.some(({ terms }) => terms !== undefined)) counts.turnsWithVectors += 1;
    if (has('tool')) counts.turnsWithTools += 1;
    if (has('routine')) counts.turnsWithRoutine += 1;
    if (has('match') && (has('tool') || has('routine'))) counts.withEngine = 1;
  }
  for (const [session, rows] of model.tables.agentStates) {
    const numbers = rows.map(({ seq }) => seq);
    if (new Set(numbers).size !== numbers.length) watch.breach('agent state', `of ${session} has numbers ${numbers.join()}`);
  }
}

/** What stands behind each beginning. */
function checkBeginnings({ watch }: Simulation, turn: string, rows: readonly TurnRow[], policies: readonly string[]): void {
  let judged = new Map<string, string[]>();
  let keys = new Set<string>();
  let unread: string[] = [];
  let checked = 0;
  for (const { kind, key = '', reference } of rows) {
    if (kind === 'began') {
      judged = new Map();
      keys = new Set();
      unread = [];
      checked = 0;
    }
    if (kind === 'check-reply' || kind === 'unchecked') checked += 1;
    if (checked > 1) watch.breach('checked', `a reply of ${turn} has more than one check`);
    if (kind === 'malformed') {
      unread.push(key);
      if (unread.filter((one) => one === key).length > 2) watch.breach('counted once', `${turn} has more than two answers to ${key} that could not be read`);
      continue;
    }
    if (key !== '' && keys.has(key)) watch.breach('counted once', `${turn} has two results of ${key}`);
    keys.add(key);
    const pass = key.split('/')[0] ?? '';
    if (kind === 'match') judged.set(pass, [...(judged.get(pass) ?? []), ...(reference?.policyIds ?? [])]);
    if (kind !== 'resolved') continue;
    for (const [number, ids] of judged) if (new Set(ids).size !== ids.length) watch.breach('judged', `pass ${number} of ${turn} judges ${ids.join()}`);
    const first = (judged.get('1') ?? []).filter((id) => !id.startsWith('routine:'));
    if (first.sort().join() !== policies.join()) watch.breach('judged', `${turn} replies with ${first.join()} judged`);
  }
}

function bodyOf({ body }: Row): TurnRow {
  return JSON.parse(body as string) as TurnRow;
}
