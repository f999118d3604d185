import { SwitchyardError } from '../../shared/errors/switchyard-error.ts';

/** The error of every call to a broker that has ended. */
export const brokerLost = () => new SwitchyardError('service.unreachable', 'the connection to the broker was lost');
