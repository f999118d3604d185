import type { LedgerRow } from './ledger-tables.ts';
import type { RouterSimulation } from './router-simulation.ts';
import type { SimulatedClient } from './simulated-client.ts';
import { PIECE, TOKENS_PER_PIECE } from './simulated-provider.ts';

/** In the error of a stream of which a frame was lost. */
const LOST = 'lost in transit';

/** What must hold once everything has recovered and all reservations are settled or have lapsed. */
export function checkRouterRules(simulation: RouterSimulation): void {
  for (const client of simulation.clients) checkClient(simulation, client);
  for (const callId of simulation.actorCalls) checkOneRow(simulation, callId);
  for (const callId of simulation.router.usage.stored.keys()) checkOneRow(simulation, callId);
  for (const callId of simulation.watch.interims) checkOneRow(simulation, callId);
  for (const number of simulation.providers.unread) simulation.watch.breach('file', `call ${number} was sent without the text of its file`);
  checkSpend(simulation);
  checkLapsed(simulation);
  checkReleased(simulation);
}

function checkClient(simulation: RouterSimulation, client: SimulatedClient): void {
  checkText(simulation, client);
  if (!client.isResumed) checkCall(simulation, client);
}

/** A stream has pieces of one answer, and each of them once if it ends well, also where it was resumed at another gateway. */
function checkText({ watch }: RouterSimulation, { asked, wholeBody }: SimulatedClient): void {
  if (!asked.stream) return;
  const answers = [...wholeBody.matchAll(PIECE)].map(([, answer]) => answer);
  if (new Set(answers).size > 1) watch.breach('text', `the stream of call ${asked.number} has pieces of several answers: ${answers.join(', ')}`);
  if (!wholeBody.includes('[DONE]')) return;
  const pieces = answers.length;
  const written = Number(/"completion_tokens":(\d+)/.exec(wholeBody)?.[1]) / TOKENS_PER_PIECE;
  if (pieces !== written) watch.breach('text', `the stream of call ${asked.number} has ${pieces} pieces of ${written}`);
}

function checkCall(simulation: RouterSimulation, client: SimulatedClient): void {
  const { watch, providers } = simulation;
  const { callId, asked, status, body } = client;
  const requests = providers.requests.get(asked.number) ?? 0;
  const rows = rowsOf(simulation, callId);
  if (status === 402 && (requests > 0 || rows.length > 0))
    watch.breach('refused', `call ${asked.number} got 402, was sent ${requests} times and has ${rows.length} rows`);
  if (requests === 0 && rows.some(({ cost_nano }) => cost_nano > 0)) watch.breach('unsent', `call ${asked.number} is billed, and no provider got it`);
  if (status === 200 && asked.stream && !/\[DONE\]|"error"/.test(body)) watch.breach('silent end', `the stream of call ${asked.number} just ended`);
  if (callId !== null && mustBeBilled(simulation, client, callId)) checkOneRow(simulation, callId, ` (call ${asked.number} of ${asked.key.id}, ${status})`);
}

/**
 * Each call that was queued, and each that a worker kept until its end. If the worker of a dispatched call is lost behind content, its gateway queues the call,
 * unless that has died, can't reach the broker or has lost a frame, or the client has left. Without a limit the terminal frame may have been shown by then
 * (docs/guarantees.md, Limits).
 */
function mustBeBilled({ watch }: RouterSimulation, { asked, gateway, hasLeft, body }: SimulatedClient, callId: string): boolean {
  if (watch.queued.has(callId)) return true;
  if (!watch.wasTaken(callId)) return false;
  if (!watch.isTakerLost(callId)) return true;
  const isQueueable = gateway.state !== 'dead' && !hasLeft && !watch.unpublished.has(callId) && !body.includes(LOST);
  return isQueueable && asked.key.limitNano !== null && body.search(PIECE) >= 0;
}

/** What the broker has lost with its store has no row, unless the call has run for long enough to have an interim record. */
function checkOneRow(simulation: RouterSimulation, callId: string, about = ''): void {
  const { length } = rowsOf(simulation, callId);
  const { lost, interims } = simulation.watch;
  if (length === 0 && lost.has(callId) && !interims.has(callId)) return;
  if (length !== 1) simulation.watch.breach('one row', `${callId}${about} has ${length} rows in the ledger`);
}

function checkSpend({ watch, tables }: RouterSimulation): void {
  const sums = new Map<string, number>();
  for (const rows of tables.ledger.values()) for (const { key_id, cost_nano } of rows) sums.set(key_id, (sums.get(key_id) ?? 0) + cost_nano);
  for (const { key_id: key, total_nano: total, day_nano: day, week_nano: week, month_nano: month, reserved_nano: reserved } of tables.spend.values()) {
    const sum = sums.get(key) ?? 0;
    if ([total, day, week, month].some((amount) => amount !== sum))
      watch.breach('sum', `${key} has spent ${total} (${day}, ${week}, ${month}), its rows cost ${sum}`);
    if (reserved !== 0) watch.breach('left over', `${reserved} are reserved of ${key}`);
  }
  for (const [key, sum] of sums) if (sum > 0 && !tables.spend.has(key)) watch.breach('sum', `${key} has no row of what it has spent`);
  for (const call of tables.reservations.keys()) watch.breach('left over', `the reservation of ${call}`);
}

/** A record that was stored in time finds its reservation, however late it is read. */
function checkLapsed({ watch, tables, router }: RouterSimulation): void {
  for (const { call_id: callId, untilMs } of tables.lapsed) {
    const record = router.usage.stored.get(callId);
    if (record?.isReserved === true && !watch.lost.has(callId) && record.atMs <= untilMs)
      watch.breach('lapse', `the reservation of ${callId} lapsed while its record waited`);
  }
}

/** The reservation of a call that a worker may have is not given back. */
function checkReleased(simulation: RouterSimulation): void {
  for (const callId of simulation.tables.released) {
    if (rowsOf(simulation, callId).some(({ cost_nano }) => cost_nano > 0))
      simulation.watch.breach('released', `the reservation of ${callId} was given back, and it was made`);
  }
}

function rowsOf({ tables }: RouterSimulation, callId: string | null): readonly LedgerRow[] {
  return callId === null ? [] : (tables.ledger.get(callId) ?? []);
}
