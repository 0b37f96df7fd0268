/** The console: sign-in, then the page of the path. */
import { type ComponentType, type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "./components/dialog";
import { EmptyState, ErrorState, Skeleton } from "./components/states";
import { Toasts } from "./components/toast";
import { type ApiError, toApiError } from "./errors";
import { identify } from "./identity";
import { Layout } from "./layout";
import { type PageEntry, PAGES } from "./pages";
import { Link, matchPath, type PageProps, type Params, place } from "./router";
import { config, hasIssuer, identity, isSignedIn, loadConfig, may, notice, refusal } from "./session";
import { SignInAgain, SignInPage } from "./sign-in";

function App(): JSX.Element {
  const [error, setError] = useState<ApiError | null>(null);
  const start = () => {
    setError(null);
    loadConfig()
      .then(async () => hasIssuer() && (await import("./oidc")).start())
      .then(() => (isSignedIn.value ? identify() : undefined))
      .catch((failure: unknown) => setError(toApiError(failure)));
  };
  useEffect(start, []);
  if (!config.value) return <main class="sign-in">{error ? <ErrorState error={error} onRetry={start} /> : null}</main>;
  if (notice.value) return <Notice />;
  if (!isSignedIn.value) return <SignInPage />;
  return (
    <>
      <Layout>{identity.value || error ? <CurrentPage /> : <Skeleton />}</Layout>
      <Dialog title="Sign in again" isOpen={refusal.value !== ""}>
        <SignInAgain />
      </Dialog>
      <Toasts />
    </>
  );
}

function Notice(): JSX.Element {
  return (
    <main class="sign-in" id="content">
      <h1>Sign in</h1>
      <p role="status">{notice.value}</p>
      <Link to="/" onClick={() => (notice.value = "")}>
        To the start
      </Link>
    </main>
  );
}

interface Found {
  entry: PageEntry;
  params: Params;
}

function findPage(path: string): Found | null {
  for (const entry of PAGES) {
    const params = matchPath(entry.pattern, path);
    if (params) return { entry, params };
  }
  return null;
}

const loaded = new Map<PageEntry, ComponentType<PageProps>>();

function CurrentPage(): JSX.Element {
  const { path } = place.value;
  const found = findPage(path);
  const entry = found?.entry;
  const [, setLoads] = useState(0);
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => {
    setError(null);
    if (!entry || loaded.has(entry)) return;
    entry.load().then(
      (module) => {
        loaded.set(entry, module.default);
        setLoads((count) => count + 1);
      },
      (failure: unknown) => setError(toApiError(failure)),
    );
  };
  useEffect(load, [entry]);
  useEffect(() => {
    document.title = entry ? `${entry.title} · Stint` : "Not found · Stint";
    window.scrollTo(0, 0);
  }, [path]);
  if (!found || !entry) {
    return (
      <EmptyState title="There is no such page">
        <Link to="/">To the start</Link>
      </EmptyState>
    );
  }
  if (entry.scope && !may(entry.scope)) {
    return (
      <div class="page">
        <h1>{entry.title}</h1>
        <EmptyState title={`This page needs the scope ${entry.scope}`}>
          Your key or token does not have it. Sign in with one that has, or ask an administrator.
        </EmptyState>
      </div>
    );
  }
  if (error) return <ErrorState error={error} onRetry={load} />;
  const Page = loaded.get(entry);
  return Page ? <Page key={path} params={found.params} /> : <Skeleton />;
}

render(<App />, document.getElementById("app")!);
