import { policyBundle } from '../../services/actor-host/test-support/policy-bundle.ts';
import type { Row } from './model-rows.ts';
import type { Simulation } from './simulation.ts';

const POLICIES = policyBundle.body.documents.policies.map(({ id }) => id).sort();

interface TurnRow {
  kind: string;
  reference?: { policyIds: string[] };
}

/**
 * Rows of turns are dense, and a reply is composed only from answers of the turn's last beginning that judge each policy once, and checked once. Agent states of a session have
 * a number each.
 */
export function checkTurns({ watch, model: { tables } }: Simulation): void {
  for (const [turn, rows] of tables.turnSteps) {
    const ordered = [...rows].sort((left, right) => (left['seq'] as number) - (right['seq'] as number));
    if (ordered.some((row, index) => row['seq'] !== index)) watch.breach('turn rows', `of ${turn} are not dense: ${ordered.map((row) => row['seq']).join()}`);
    let judged: string[] = [];
    let checked = 0;
    for (const { kind, reference } of ordered.map(bodyOf)) {
      if (kind === 'began') {
        judged = [];
        checked = 0;
      }
      if (kind === 'check-reply' || kind === 'unchecked') checked += 1;
      if (checked > 1) watch.breach('checked', `a reply of ${turn} has more than one check`);
      if (kind === 'match') judged.push(...(reference?.policyIds ?? []));
      if (kind === 'resolved' && judged.sort().join() !== POLICIES.join()) watch.breach('judged', `${turn} replies with ${judged.join()} judged`);
    }
  }
  for (const [session, rows] of tables.agentStates) {
    const numbers = rows.map(({ seq }) => seq);
    if (new Set(numbers).size !== numbers.length) watch.breach('agent state', `of ${session} has numbers ${numbers.join()}`);
  }
}

function bodyOf({ body }: Row): TurnRow {
  return JSON.parse(body as string) as TurnRow;
}
