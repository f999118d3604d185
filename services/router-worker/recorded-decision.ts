import type { UsageDecision } from '#bus/messages/usage-decision.ts';
import type { Attempted } from './call/attempt.ts';
import type { Choice } from './call/candidates.ts';
import type { Decision, RankedEndpoint } from './call/decision.ts';
import { storedText } from './stored-text.ts';

/** Of candidates, and of all excluded endpoints together: the record is a row. More than calls have attempts. */
export const MAX_RECORDED_ENDPOINTS = 16;
/** A request may name a hundred, of any length. */
const MAX_REQUESTED = 8;
const MAX_NAME_CHARS = 128;

type DecidedAttempt = Pick<Attempted, 'candidate'>;

/** The decision of a usage record. @returns null when nothing was to decide: the rest of the record says which endpoint it was */
export function recordedDecisionOf(choice: Choice, attempts: readonly DecidedAttempt[]): UsageDecision | null {
  if (isTrivial(choice)) return null;
  const { candidates, decision } = choice;
  const listed = decision.candidates.slice(0, MAX_RECORDED_ENDPOINTS);
  const more = candidates.length - listed.length;
  return {
    requested: decision.requested.slice(0, MAX_REQUESTED).map((name) => storedText(name, MAX_NAME_CHARS)),
    strategy: decision.strategy,
    ...(decision.sortedBy !== null && { sortedBy: decision.sortedBy }),
    ...(decision.seed !== null && { drawn: true }),
    candidates: listed.map(rankedOf),
    ...(more > 0 && { more }),
    tried: attempts.map(({ candidate }) => candidates.indexOf(candidate)),
    ...(decision.excluded.length > 0 && { excluded: excludedOf(decision) }),
  };
}

/** A tag of its own is in no other field of the record. */
function isTrivial({ candidates, decision: { excluded } }: Choice): boolean {
  const [only] = candidates;
  return only !== undefined && candidates.length === 1 && excluded.length === 0 && only.id === `${only.model.id}@${only.provider.slug}`;
}

/** What did not matter is left out. */
function rankedOf({ endpoint, health, price, weight, sticky, slow }: RankedEndpoint): UsageDecision['candidates'][number] {
  return {
    endpoint,
    ...(health !== null && { health }),
    ...(price !== null && { price }),
    ...(weight !== null && { weight }),
    ...(sticky === true && { sticky }),
    ...(slow === true && { slow }),
  };
}

function excludedOf({ excluded }: Decision): NonNullable<UsageDecision['excluded']> {
  let left = MAX_RECORDED_ENDPOINTS;
  return excluded.map(({ filter, endpoints, more: unlisted = 0 }) => {
    const listed = endpoints.slice(0, left);
    left -= listed.length;
    const more = endpoints.length - listed.length + unlisted;
    return { filter, endpoints: listed, ...(more > 0 && { more }) };
  });
}
