import { invalidField } from '../plugins/error-reply.ts';
import type { CustomerRows } from './customer-rows.ts';

/**
 * The customer of a new session: the given one, or else a new guest.
 * @param guestId of the guest; a repeated request creates no second one
 * @throws `request.invalid` for a customer that does not exist, or that a run has for itself
 */
export async function customerOfSession(rows: Pick<CustomerRows, 'byId' | 'insert'>, given: string | undefined, guestId: string): Promise<string> {
  if (given === undefined) {
    await rows.insert({ id: guestId, name: 'Guest', external_id: null, tags: [], metadata: {} });
    return guestId;
  }
  const customer = await rows.byId(given);
  if (customer === null) throw invalidField('/customer_id', 'must be the id of a customer: POST /customers registers one');
  // It is deleted with the session of its run.
  if (customer.ephemeral) throw invalidField('/customer_id', 'must not be the customer of a run');
  return customer.id;
}
