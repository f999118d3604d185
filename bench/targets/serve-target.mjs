/** @typedef {import('../process-usage.mjs').Root} Root */

/**
 * @typedef {object} Facts what a target reports once it is ready
 * @property {Root[]} roots the processes that are measured: not the one that starts them
 * @property {string} [routerUrl] of its chat completions
 * @property {string} [agentUrl]
 * @property {string} [turnUrl] where a posted request is one durable turn
 * @property {{ routerKey: string, agentKey: string }} [keys]
 * @property {string} [databaseUrl] of its PostgreSQL
 * @property {string} [loopFile] where the agent gateway writes the longest block of its event loop (`profile/loop-on-signal.mjs`); absent: it does not
 * @property {string} [brokerUrl] of the broker's monitoring
 * @property {{ role: string, managementUrl: string }[]} [management] the addresses of its processes' metrics
 */

/** @typedef {{ facts: Facts, stop: () => Promise<void>, calls?: Record<string, () => unknown> }} Served `calls`: requests that it answers, by name */

/**
 * The parent process of a target. It starts on the same core as all that it starts, reports over its channel when that is
 * ready, and ends it on request or when the channel breaks, since the measuring process may be killed.
 *
 * @template Options
 * @param {(options: Options) => Promise<Served>} start options are the first argument, as JSON
 */
export async function serveTarget(start) {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => {}); // a Ctrl-C is handled by the measuring process, which then ends this one
  const starting = start(JSON.parse(process.argv[2] ?? '{}'));
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    const code = await starting
      .then(({ stop: end }) => end())
      .then(
        () => 0,
        (error) => {
          console.error(error);
          return 1;
        },
      );
    process.exit(code);
  };
  process.on('disconnect', () => void stop());
  try {
    const { facts, calls = {} } = await starting;
    process.on('message', (message) => {
      const { call } = /** @type {{ call: string }} */ (message);
      if (call === 'stop') return void stop();
      void Promise.resolve(calls[call]?.()).then((result) => process.send?.({ result }));
    });
    process.send?.({ ready: facts });
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
}
