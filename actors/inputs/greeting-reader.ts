import type { CommandOf } from '#bus/messages/session.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { greetingOf, greetingVariables } from '../engine/greeting-of.ts';
import type { CustomerReader } from './customer-reader.ts';

interface GreetingDeps {
  bundleOf(hash: string): Promise<Bundle>;
  customers: Pick<CustomerReader, 'read'>;
}

/** Of a session that is created; the customer is read only if the greeting names one of its variables. Null: there is no greeting. */
export function greetingReader({ bundleOf, customers }: GreetingDeps): (command: CommandOf<'session.create'>) => Promise<string | null> {
  return async ({ bundleHash, sessionId, customerId, allowGreeting }) => {
    const { body } = await bundleOf(bundleHash);
    const names = allowGreeting ? greetingVariables(body) : [];
    if (names.length === 0) return greetingOf(body);
    const { values } = await customers.read({ sessionId, customerId }, names);
    return greetingOf(body, values);
  };
}
