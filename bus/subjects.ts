import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Who speaks on the bus, each with a user of its own at the broker. `operator` is the command line that replays dead letters. */
export type BusUser = 'router-gateway' | 'agent-gateway' | 'actor-host' | 'router-worker' | 'effect-worker' | 'operator';

interface Address {
  pattern: string;
  publish: readonly BusUser[];
  read: readonly BusUser[];
}

/** Every address of the house. Code, the broker's permissions and the compose file are made from this one table. */
export const addresses = {
  /** `cmd.<partition>`: commands to the owner of a partition, kept in the command log. */
  commands: { pattern: 'cmd.*', publish: ['agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'operator'], read: ['actor-host'] },
  /** A model call that a turn waits for. */
  turnCalls: { pattern: 'work.router.turn', publish: ['actor-host'], read: ['router-worker'] },
  /** A model call that a client of the router waits for. */
  clientCalls: { pattern: 'work.router.call', publish: ['router-gateway', 'router-worker'], read: ['router-worker'] },
  /** The same, handed to a worker that is free. One whose hands are full puts it on the queue. */
  dispatchedCalls: { pattern: 'offer.router.call', publish: ['router-gateway'], read: ['router-worker'] },
  /** Tools of the agent's tool servers: calls and lists. */
  tools: { pattern: 'work.tool', publish: ['actor-host'], read: ['effect-worker'] },
  /** Callbacks of settled runs. */
  deliveries: { pattern: 'work.delivery', publish: ['actor-host', 'operator'], read: ['effect-worker'] },
  /** `tok.<origin>.<call>`: frames of a call towards who shows them. The origin is a gateway's id, or a session's. */
  tokens: { pattern: 'tok.*.*', publish: ['router-worker'], read: ['router-gateway', 'agent-gateway'] },
  /** `live.<origin>._batch`: the same, of frames that are kept a little later, or not at all; those of all calls and one moment are one message. */
  liveTokens: { pattern: 'live.*.*', publish: ['router-worker'], read: ['router-gateway', 'agent-gateway'] },
  /** `evt.<session>`: new events of a session's log. */
  notices: { pattern: 'evt.*', publish: ['actor-host'], read: ['agent-gateway'] },
  /** `part.<partition>`: the partition has a new owner; readers re-check what they follow. */
  partitions: { pattern: 'part.*', publish: ['actor-host'], read: ['agent-gateway'] },
  /** `host.<host>`: a host has come, gone, or given partitions back; the others look at once. */
  hosts: { pattern: 'host.*', publish: ['actor-host'], read: ['actor-host'] },
  /** `ans.<gateway>`: answers to commands that asked for one. */
  replies: { pattern: 'ans.*', publish: ['actor-host'], read: ['agent-gateway'] },
  /** `ctl.<call>`: abort a call, of a model or of a tool. */
  control: { pattern: 'ctl.*', publish: ['router-gateway', 'actor-host'], read: ['router-worker', 'effect-worker'] },
  /** `hb.<origin>`: a worker lives, runs these calls of the origin, and asks who holds them. Of actors' calls the partition is asked. */
  heartbeats: { pattern: 'hb.*', publish: ['router-worker'], read: ['router-gateway', 'actor-host'] },
  /** `held.<worker>`: which of the calls it asked about have somebody who waits for them. */
  interestReplies: { pattern: 'held.*', publish: ['router-gateway', 'actor-host'], read: ['router-worker'] },
} as const satisfies Record<string, Address>;

/** One token of a subject. `.` separates tokens and `*` `>` are wildcards, so an id may hold none of them. */
const TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/** Whether a text can stand as one token of a subject. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Fills the `*` of a pattern in order: `subjectOf(addresses.tokens, origin, callId)`. @throws `bus.invalid_subject` */
export function subjectOf({ pattern }: Address, ...tokens: (string | number)[]): string {
  const subject = filled(pattern, tokens);
  if (subject.includes('*')) throw new SwitchyardError('bus.invalid_subject', `${pattern} wants more than ${tokens.length} tokens`);
  return subject;
}

/** A subscription pattern over all that follows the given tokens: `patternOf(addresses.tokens, origin)` is `tok.<origin>.*`. @throws `bus.invalid_subject` */
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
