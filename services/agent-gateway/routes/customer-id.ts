import { customerId } from '#shared/contracts/agent/customer.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Whether a text can be a customer's id. Any other must not reach a query. */
export function isCustomerId(text: string): boolean {
  return customerId.safeParse(text).success;
}

/** @throws `customer.not_found` for a text that can't be a customer's id */
export function checkedCustomerId(text: string): string {
  if (!isCustomerId(text)) throw noSuchCustomer();
  return text;
}

export function noSuchCustomer(): SwitchyardError {
  return new SwitchyardError('customer.not_found', 'there is no such customer');
}
