import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { invalidField } from '../plugins/error-reply.ts';
import type { CustomerRows, NewCustomer } from './customer-rows.ts';

/** A creation of a session, whose ids a repeated request has too. */
interface Creation {
  sessionId: string;
  commandId: string;
  guestId: string;
}

/**
 * The customer of a new session: the given one, or else a new guest. The guest of a creation that was processed may be deleted by now, and is not made again.
 * @throws `request.invalid` for a customer that does not exist, or that a run has for itself
 */
export async function customerOfSession(
  rows: Pick<CustomerRows, 'byId' | 'insertUnlessProcessed'>,
  given: string | undefined,
  { sessionId, commandId, guestId }: Creation,
): Promise<string> {
  if (given === undefined) {
    await rows.insertUnlessProcessed(guestOf(guestId), sessionId, commandId);
    return guestId;
  }
  const customer = await rows.byId(given);
  if (customer === null) throw noCustomer();
  // It is deleted with the session of its run.
  if (customer.ephemeral) throw invalidField('/customer_id', 'must not be the customer of a run');
  return customer.id;
}

/**
 * For a session that its owner has just stored: the deletion of its customer may have begun before, and found no session. Call it behind the owner's reply: a
 * deletion that began before that is over when this returns, and one that begins later finds the session.
 * @param isKnown of the session; null: unknown right now. One that is deleted since needs no guest
 * @returns whether the session has its customer; a guest is made again
 */
export async function keepsCustomer(
  rows: Pick<CustomerRows, 'shared' | 'insert'>,
  given: string | undefined,
  guestId: string,
  isKnown: () => Promise<boolean | null>,
): Promise<boolean> {
  if ((await rows.shared(given ?? guestId)) !== null) return true;
  if (given !== undefined) return false;
  if ((await isKnown()) !== false) await rows.insert(guestOf(guestId));
  return true;
}

export function noCustomer(): SwitchyardError {
  return invalidField('/customer_id', 'must be the id of a customer: POST /customers registers one');
}

function guestOf(id: string): NewCustomer {
  return { id, name: 'Guest', external_id: null, tags: [], metadata: {} };
}
