import { writeSync } from 'node:fs';
import type { Environment } from './config/secret-ref.ts';
import { SwitchyardError } from './errors/switchyard-error.ts';

/**
 * The points at which tests kill or stop a process, and what is true there. An await without a fail point has a comment with the reason;
 * `tests/helpers/scan-awaits.ts` has the table of them, and `tests/fail-points.test.ts` the files.
 */
export const failPoints = {
  'commit.sending': 'a commit is about to be sent to the database',
  'commit.stored': 'the commit is stored, and nothing of it is published',
  'commit.announced': 'the commit is stored, and notices, replies and work items may be published',
  'outbox.rendered': 'an effect is stored, and its work item is about to be published',
  'outbox.dispatched': 'a model call is sent to a worker, and stored nowhere but in its effect’s row',
  'outbox.published': 'the item is on the bus, and its effect is still marked as unpublished',
  'heartbeat.written': 'the heartbeat of a host is stored, and it may own no partition yet',
  'take-over.claimed': 'partitions have a new epoch, and the state that their last owner stored is not read yet',
  'take-over.effects-read': 'their open effects are read, and are about to be republished',
  'take-over.timers-read': 'their timers are read, and those that are due are about to fire',
  'take-over.loaded': 'all stored state is loaded, and no command is read yet',
  'partitions.let-go': 'a host has stopped work on some partitions, whose rows still name it as owner',
  'partitions.given-back': 'a host that stays has released partitions, and has not announced it',
  'leave.signed-off': 'a host that stops is deregistered, and the rows of its partitions still name it as owner',
  'leave.given-back': 'a host that stops has released its partitions, and has not announced it',
  'call.reserved': 'the credit of a call is reserved, and the call is not sent',
  'call.sent': 'a call is dispatched, or on its way to the queue, and nothing of its answer has arrived',
  'call.queued': 'a call is in the queue, and its gateway has not noted it',
  'item.taken': 'a worker has received an item, and has sent no request',
  'file.read': 'a file of a call is read, and no provider is asked',
  'item.done': 'the request of an item is done, a call’s answer is published to readers, and no result is stored',
  'call.recorded': 'the usage record of a call is stored; its result is not, nor is its terminal frame published if the call has a reservation',
  'ledger.written': 'usage records are in the ledger, and not acknowledged',
  'item.reported': 'the result of an item is in the log, and the item is not acknowledged',
  'item.acked': 'the item is acknowledged',
  'tool.claimed': 'a call that must not be made twice is claimed, and the tool has not been called',
  'tool.answered': 'the tool has responded, and the outcome is not reported',
  'tool-list.stored': 'a list of tools is stored, and no server’s row names it',
  'webhook.matched': 'the routines of a webhook’s delivery are found, and nothing of it is stored',
  'run.stored': 'an accepted run is stored, of a webhook with its delivery and the other runs, and its start command is not published',
  'run.started': 'the start command of an accepted run is in the log, and the request is not answered',
  'delivery.counted': 'an attempt of a callback is counted, and nothing has been sent',
  'document.kept': 'a start has stored a document of another platform, and not yet those that it names',
  'delivery.posted': 'the receiver has responded, and the outcome is not reported',
} as const satisfies Record<string, string>;

export type FailPoint = keyof typeof failPoints;

/** `FAIL_POINT=<name>:<kill|stop>[:<hit>]`: the signal is sent at the `hit`-th time (default: the first). */
interface Armed {
  point: FailPoint;
  signal: 'SIGKILL' | 'SIGSTOP';
  hit: number;
}

const FORM = /^([a-z.-]+):(kill|stop)(?::([1-9]\d{0,5}))?$/;

const armed = armedBy(process.env);
/** A disarmed point costs one branch. */
const isArmed = armed !== null && armed !== 'refused';
let reached = 0;

/** A fail point: when armed, logs to stderr, then sends this process SIGKILL or SIGSTOP. */
export function failPoint(point: FailPoint): void {
  if (isArmed) reach(point, armed);
}

function reach(point: FailPoint, { point: armedPoint, signal, hit }: Armed): void {
  if (point !== armedPoint) return;
  reached += 1;
  if (reached !== hit) return;
  writeSync(2, `fail point ${point}: ${signal}\n`);
  process.kill(process.pid, signal);
  // The signal may be delayed, and nothing after the point may run.
  if (signal === 'SIGKILL') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/** Call it at the start of every process. @throws `config.invalid` when FAIL_POINT is set in production, or is no valid point */
export function checkFailPoint(environment: Environment): void {
  if (armedBy(environment) !== 'refused') return;
  const why = isProduction(environment) ? 'is for tests and is refused in production' : 'must be <name>:<kill|stop>[:<hit>] with the name of a fail point';
  throw new SwitchyardError('config.invalid', `FAIL_POINT ${why}`);
}

/** Null: not set. */
function armedBy(environment: Environment): Armed | 'refused' | null {
  const text = environment['FAIL_POINT'] ?? '';
  if (text === '') return null;
  const [, point = '', action, hit = '1'] = FORM.exec(text) ?? [];
  if (isProduction(environment) || !isFailPoint(point)) return 'refused';
  return { point, signal: action === 'kill' ? 'SIGKILL' : 'SIGSTOP', hit: Number(hit) };
}

function isProduction(environment: Environment): boolean {
  return environment['NODE_ENV'] === 'production';
}

function isFailPoint(name: string): name is FailPoint {
  return Object.hasOwn(failPoints, name);
}
