import { eventually } from '../../helpers/eventually.ts';
import { TIMEOUT_MS } from '../environment.ts';
import { drainHost, type Fault } from '../scenario.ts';

/**
 * Ends the broker while three processes are paused between two steps that involve it: a host between the dispatch of a model
 * call and its result, a worker between a call and its result, and one between its result and the acknowledgement.
 */
export function brokerEndsInBetween(signal: 'SIGTERM' | 'SIGKILL'): Fault {
  return {
    name: `the broker is ${signal === 'SIGKILL' ? 'killed' : 'restarted'} between dispatch, result and acknowledgement`,
    extraCalls: 1,
    inject: async (environment) => {
      const host = await environment.addHost({ FAIL_POINT: 'outbox.dispatched:stop:5' });
      const workers = await Promise.all(['item.done', 'item.reported'].map((point) => environment.add('effect-worker', { FAIL_POINT: `${point}:stop` })));
      const still = [host, ...workers];
      await eventually(() => still.every((one) => one.output().includes('SIGSTOP')), { timeoutMs: TIMEOUT_MS });
      await environment.endStore('nats', signal);
      await environment.cluster.nats.start();
      for (const one of still) one.signal('SIGCONT');
      await drainHost(environment, host);
      await Promise.all(workers.map((worker) => environment.end(worker, 'SIGTERM')));
    },
  };
}
