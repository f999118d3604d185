import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** What a process does. `operator` is the command line that replays dead letters. */
export type BusRole = 'router-gateway' | 'agent-gateway' | 'actor-host' | 'router-worker' | 'effect-worker' | 'operator';

/** Each kind of process has its own user at the broker: named after its role, or `router` and `agent` with two of them (ADRs 116 and 125). */
export type BusUser = BusRole | keyof typeof coLocatedRoles;

const coLocatedRoles = {
  router: ['router-gateway', 'router-worker'],
  agent: ['agent-gateway', 'actor-host'],
} as const satisfies Record<string, readonly BusRole[]>;

/** A user has the rights of its roles. */
export function rolesOf(user: BusUser): readonly BusRole[] {
  return user === 'router' || user === 'agent' ? coLocatedRoles[user] : [user];
}

export interface Address {
  pattern: string;
  publish: readonly BusRole[];
  read: readonly BusRole[];
}

/** All subjects but those of work items (work-queues.ts). The code, the broker's permissions and the compose file derive from this table. */
export const addresses = {
  /** `cmd.<partition>`: commands to its owner, stored in the command log. */
  commands: { pattern: 'cmd.*', publish: ['agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'operator'], read: ['actor-host'] },
  /** Model calls of the router's clients, dispatched. A worker without a free slot publishes it to the queue. */
  dispatchedCalls: { pattern: 'offer.router.call', publish: ['router-gateway'], read: ['router-worker'] },
  /** Model calls of turns and runs, dispatched likewise. */
  dispatchedTurns: { pattern: 'dispatch.router.turn', publish: ['actor-host'], read: ['router-worker'] },
  /** `stored.<publisher>`: the id of a dispatch that a worker without a free slot has put into the queue. Gateways do not need it. */
  storedDispatches: { pattern: 'stored.*', publish: ['router-worker'], read: ['actor-host'] },
  /** `tok.<origin>.<call>`: stored frames of a call. The origin is a gateway's id, a session's, or that of a host that evaluates documents. */
  tokens: { pattern: 'tok.*.*', publish: ['router-worker'], read: ['router-gateway', 'agent-gateway', 'actor-host'] },
  /** `live.<origin>._batch`: frames that are stored later or never, of all calls of an origin in one tick. */
  liveTokens: { pattern: 'live.*.*', publish: ['router-worker'], read: ['router-gateway', 'agent-gateway', 'actor-host'] },
  /** `evt.<session>`: new events of a session's log. */
  notices: { pattern: 'evt.*', publish: ['actor-host'], read: ['agent-gateway'] },
  /** `part.<partition>`: a new owner; readers re-check what they follow. */
  partitions: { pattern: 'part.*', publish: ['actor-host'], read: ['agent-gateway'] },
  /** `host.<host>`: it started, stopped or released partitions; the others check at once. */
  hosts: { pattern: 'host.*', publish: ['actor-host'], read: ['actor-host'] },
  /** `ans.<gateway>`: replies to commands. */
  replies: { pattern: 'ans.*', publish: ['actor-host'], read: ['agent-gateway'] },
  /** `ctl.<call>`: aborts a model or tool call, or says that a client has resumed it. */
  control: { pattern: 'ctl.*', publish: ['router-gateway', 'actor-host'], read: ['router-worker', 'effect-worker'] },
  /** Usage records of calls that have ended, stored in the usage log. */
  usage: { pattern: 'usage.record', publish: ['router-worker', 'operator'], read: ['router-worker'] },
  /** `key.<hash>`: a key was changed, disabled or deleted; what is cached of it is dropped. */
  keys: { pattern: 'key.*', publish: ['router-gateway'], read: ['router-gateway', 'router-worker'] },
  /** `hb.<origin>`, for calls of actors `hb.<partition>`: a worker's running calls, and the question which of them have interest. */
  heartbeats: { pattern: 'hb.*', publish: ['router-worker'], read: ['router-gateway', 'actor-host'] },
  /** `held.<worker>`: which of those calls have interest. */
  interestReplies: { pattern: 'held.*', publish: ['router-gateway', 'actor-host'], read: ['router-worker'] },
} as const satisfies Record<string, Address>;

/** `.` separates tokens and `*` `>` are wildcards, so an id may contain none of them. */
const TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Fills the `*` in order: `subjectOf(addresses.tokens, origin, callId)`. @throws `bus.invalid_subject` */
export function subjectOf({ pattern }: Address, ...tokens: (string | number)[]): string {
  const subject = filled(pattern, tokens);
  if (subject.includes('*')) throw new SwitchyardError('bus.invalid_subject', `${pattern} wants more than ${tokens.length} tokens`);
  return subject;
}

/** Fills the first `*`: `patternOf(addresses.tokens, origin)` is `tok.<origin>.*`. @throws `bus.invalid_subject` */
export function patternOf({ pattern }: Address, ...tokens: string[]): string {
  return filled(pattern, tokens);
}

function filled(pattern: string, tokens: readonly (string | number)[]): string {
  let subject = '';
  let from = 0;
  for (const token of tokens) {
    const at = pattern.indexOf('*', from);
    if (at === -1) throw new SwitchyardError('bus.invalid_subject', `${pattern} has no room for '${token}'`);
    if (!TOKEN.test(String(token))) throw new SwitchyardError('bus.invalid_subject', `${pattern} can't take '${token}'`);
    subject += `${pattern.slice(from, at)}${token}`;
    from = at + 1;
  }
  return subject + pattern.slice(from);
}
