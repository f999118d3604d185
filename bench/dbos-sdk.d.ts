/** As much of the package as the bench uses, so that types are checked without it being installed. */
declare module '@dbos-inc/dbos-sdk' {
  interface WorkflowHandle<Result> {
    workflowID: string;
    getResult(): Promise<Result>;
  }

  type Workflow<Args extends unknown[], Result> = (...args: Args) => Promise<Result>;

  export const DBOS: {
    setConfig(config: { name: string; systemDatabaseUrl: string; logLevel: string }): void;
    launch(): Promise<void>;
    registerWorkflow<Args extends unknown[], Result>(workflow: Workflow<Args, Result>, options: { name: string }): Workflow<Args, Result>;
    runStep<Result>(step: () => Promise<Result>, options: { name: string }): Promise<Result>;
    startWorkflow<Args extends unknown[], Result>(workflow: Workflow<Args, Result>): (...args: Args) => Promise<WorkflowHandle<Result>>;
  };
}
