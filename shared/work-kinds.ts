/** The kinds of work items, as metrics name them. Each has a row in bus/work-queues.ts. */
export const workKinds = ['router.turn', 'router.call', 'tool', 'delivery'] as const;
