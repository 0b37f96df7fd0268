import type { JSX } from "preact";
import type { PageProps } from "../../router";
import { StoreView } from "./store";

export default function SearchPage({ params }: PageProps): JSX.Element {
  return <StoreView id={params["store"]!} part="search" />;
}
