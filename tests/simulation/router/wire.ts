import type { ModelBroker } from '../model-broker.ts';
import type { Process, Scheduler } from '../scheduler.ts';

/** What processes have sent and the broker has not read. Of one process it arrives in order; a process that dies may have sent less than it wrote. */
export class Wire {
  readonly #scheduler: Scheduler;
  readonly #broker: ModelBroker;
  readonly #cut = new Set<Process>();

  constructor(scheduler: Scheduler, broker: ModelBroker) {
    this.#scheduler = scheduler;
    this.#broker = broker;
  }

  /** @param arrive called by the broker, or never */
  send(process: Process, arrive: () => void): void {
    if (process.state === 'dead') return;
    this.#scheduler.post(this.#broker.process, `sent by ${process.id}`, `reads from ${process.id}`, () => {
      if (!this.#cut.has(process) && !this.#broker.isCutOff(process)) arrive();
    });
  }

  /** Nothing more of it arrives. */
  cut(process: Process): void {
    this.#cut.add(process);
  }
}
