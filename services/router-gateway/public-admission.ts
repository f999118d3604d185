import type { FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ArrivingBodies } from '#shared/http-server/arriving-bodies.ts';
import type { RequestAdmission } from './admission.ts';
import type { GatewayLimits } from './limits.ts';

/**
 * Bounds the requests of routes that need no key, apart from those of callers with one. Beyond the bound the request whose body has been arriving for longest
 * gives way to a new one, and a body has little time: who sends it is not known. A stop does not wait for them.
 *
 * A request is open until its reply is handed over: a client that pipelines requests and reads nothing keeps their responses open for as long as it likes.
 */
export class PublicAdmission implements RequestAdmission {
  readonly untilReply = true;
  readonly #mostRequests: number;
  readonly #tooMany: SwitchyardError;
  readonly #arriving: ArrivingBodies;
  #open = 0;

  constructor({ publicRequests, publicBodyMs, retryAfterMs }: Pick<GatewayLimits, 'publicRequests' | 'publicBodyMs' | 'retryAfterMs'>) {
    this.#mostRequests = publicRequests;
    this.#tooMany = new SwitchyardError('service.overloaded', `this gateway already has ${publicRequests} open requests without a key`, {
      details: { retryAfterMs },
    });
    this.#arriving = new ArrivingBodies({ ms: publicBodyMs, error: new SwitchyardError('request.timeout', 'The request was not received in time') });
  }

  /** @throws `service.overloaded` */
  enterRequest(request: FastifyRequest, reply: FastifyReply): void {
    if (this.#open >= this.#mostRequests && !this.#arriving.failOldest(this.#tooMany)) throw this.#tooMany;
    this.#open += 1;
    let isOpen = true;
    let stopReading = () => {};
    const leave = () => {
      stopReading();
      if (isOpen) this.#open -= 1;
      isOpen = false;
    };
    request.admitted = {
      reading: (fail) => {
        stopReading = this.#arriving.begin(reply, (error) => {
          // At once: a client that reads nothing keeps its response open.
          leave();
          fail(error);
        });
        return stopReading;
      },
      // At most 64 KiB each.
      bodyGrew: () => {},
      arrived: () => {},
      bodyDone: () => {},
      leave,
    };
    // Without a reply: the client has disconnected.
    reply.raw.on('close', leave);
  }
}
