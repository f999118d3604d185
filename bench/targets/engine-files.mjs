/** @typedef {{ delayMs: number, hasPreamble?: boolean }} EngineOptions `delayMs`: of each model call */

/** Of an agent with policies; none has tools. */
const POLICIES = 12;
/** Policies per matching call. */
const BATCH = 5;

const v1 = (/** @type {string} */ id) => ({ id, version: 1 });

/** The path of the agent's model at the upstream. @param {number} delayMs of each call */
export function engineModelPath(delayMs) {
  return `engine-d${delayMs}`;
}

/** Documents of twelve policies and one routine, by path. @returns {Record<string, object>} */
export function engineDocuments() {
  /** @type {Record<string, object>} */
  const files = {};
  for (const id of policyIds()) {
    const topic = id.slice(1);
    files[`policies/${id}`] = { ...v1(id), condition: `The customer asks about topic ${topic}`, action: `Say what the terms say about topic ${topic}` };
  }
  files['routines/repair'] = {
    ...{ ...v1('repair'), title: 'Repair', conditions: ['The machine is broken'] },
    steps: ['model', 'age', 'fault', 'advice'].map((id) => ({ id, kind: 'chat', chat_state: `Ask for the ${id}, or say what is known of it` })),
    transitions: [
      { from: 'model', to: 'age', when: 'The model is known' },
      { from: 'age', to: 'fault', when: 'The age is known' },
      { from: 'fault', to: 'advice', when: 'The fault is known' },
      { from: 'advice', to: 'end' },
    ],
  };
  return files;
}

/** What the manifest says of them. @param {EngineOptions} options */
export function engineManifest({ hasPreamble = false }) {
  const preamble = hasPreamble ? { preamble: { examples: ['One moment, please.', 'I am looking it up.'] } } : {};
  return { context: { ...preamble, policies: policyIds().map(v1), routines: [v1('repair')] }, runtime: { policy_batch_size: BATCH } };
}

function policyIds() {
  return Array.from({ length: POLICIES }, (_, number) => `p${number}`);
}
